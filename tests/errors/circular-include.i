# call: read
!include circular-include.i
