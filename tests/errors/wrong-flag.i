# call: flag Drivers driver show_cp
[Drivers]
  [driver]
    show_cp = True
  []
[]
