# call: read
[Models]
  !include parts/brokn.i
[]
