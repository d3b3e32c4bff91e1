# call: read
a = '${b} 1'
b = ${a}
