# call: read 'Models/model/models:=elasticity flow' nbatch
[Models]
  [model]
    models = 'elasticity'
  []
[]
