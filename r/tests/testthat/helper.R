#' Evaluate with another program, and put the old one back.
withr_program <- function(command, code) {
  old <- options(unround.program = command)
  on.exit(options(old))
  force(code)
}

#' What the program prints by itself, without this package: the judge of what comes back as data frames.
said <- function(...) {
  command <- unround:::program_checked()
  jsonlite::fromJSON(processx::run(command[1], c(command[-1], ..., "--json", "-q"), error_on_status = FALSE)$stdout, simplifyMatrix = FALSE)
}

#' Forty districts, each rounded to base 5 but for the totals.
districts <- function(n = 40, seed = 1) {
  set.seed(seed)
  men <- sample(0:60, n, TRUE)
  women <- sample(0:60, n, TRUE)
  rounded <- function(x) 5 * (x %/% 5 + (runif(length(x)) < (x %% 5) / 5))
  data.frame(District = sprintf("D%02d", seq_len(n)), Total = men + women, Men = rounded(men), Women = rounded(women))
}
