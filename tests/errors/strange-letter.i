# call: read
# Werkstoff für Wärme
[Models]
  [elasticity]
    wärme = 3
  []
[]
