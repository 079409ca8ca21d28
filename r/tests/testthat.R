library(testthat)
library(unround)
test_check("unround")
