# call: trace product
[Models]
  [product]
    type = ScalarMultiplication
    from = 'a b c'
    reciprocal = 'true false'
  []
[]
