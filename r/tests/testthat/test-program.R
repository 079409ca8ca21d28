test_that("options are passed on as the command line wants them", {
  expect_equal(unround:::flags(list(base = 3, clamp = TRUE, keys = FALSE, truth = NULL)), c("--base", "3", "--clamp"))
  expect_equal(unround:::flags(list(exact = c("a", "b"))), c("--exact", "a", "--exact", "b"))
  expect_equal(unround:::flags(list(what_if = "all", threshold = 0.66)), c("--what-if", "all", "--threshold", "0.66"))
  expect_error(unround:::flags(list(5)), "have names", class = "unround_input_error")
})

test_that("a program that is missing, is another one or is too old is said", {
  expect_error(withr_program("/nowhere/unround", solve("1 = 1")), class = "unround_not_found")
  expect_error(withr_program("true", solve("1 = 1")), "is not the program", class = "unround_not_found")
  expect_error(withr_program(c("echo", "unround 0.1.0"), solve("1 = 1")), "needs unround", class = "unround_not_found")
})

test_that("base::solve still solves equations", {
  expect_equal(solve(matrix(c(2, 0, 0, 2), 2)), matrix(c(0.5, 0, 0, 0.5), 2))
})

test_that("errors have the program's own words", {
  skip_if_not(available(), "there is no program unround")
  expect_error(solve("20! = 3 + 3"), "3 cannot come from rounding to base 5", class = "unround_input_error")
  expect_error(audit("no-such-file.csv"), "there is no file", class = "unround_input_error")
  expect_error(check(7), "data frame or the path", class = "unround_input_error")
})
