# call: driver regression
[Drivers]
  [other]
    type = Verification
  []
  [regression]
    type = TransientRegression
    driver = 'other'
    reference = 'gold/nothing.pt'
    rtol = small
  []
[]
