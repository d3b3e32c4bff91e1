# call: read
[Models]
  !include parts/broken.i
[]
