skip_if_not(available(), "there is no program unround")

written <- function(table) {
  path <- tempfile(fileext = ".csv")
  write.csv(table, path, row.names = FALSE)
  path
}

test_that("solve says what the program says", {
  for (equation in c("48! = 20 + 20 + 20", "87! = men: 35 + women: 45", "100 = 30 + 30 + 40")) {
    expect_equal(as.data.frame(solve(equation)), said("solve", equation)$cells)
  }
  expect_output(print(solve("48! = 20 + 20 + 20")), "1 solution")
  expect_output(print(solve("100! = 5 + 5")), "No true counts fit")
})

test_that("check, audit and explain agree with the program on a frame", {
  table <- districts()
  path <- written(table)
  expect_equal(check(table, base = 5, exact = "Total")$table$parts, said("check", path, "--base", "5", "--exact", "Total")$sums$parts)
  found <- audit(table, base = 5, exact = "Total")
  again <- said("audit", path, "--base", "5", "--exact", "Total", "-o", file.path(tempfile(), "audit"))
  expect_equal(unlist(found$json[c("proved", "conditional", "likely")]), unlist(again[c("proved", "conditional", "likely")]))
  expect_equal(nrow(as.data.frame(found)), found$json$proved + found$json$conditional + found$json$likely)
  count <- explain(found, "D01", "Men")
  expect_equal(sum(count$table$probability), 1)
  expect_true(all(count$table$count >= count$json$low & count$table$count <= count$json$high))
  expect_output(summary(found), "proved")
})

test_that("a decision is a result, not an error", {
  draft <- data.frame(District = sprintf("D%d", 1:12), Total = 20 + 1:12, Men = c(1, 10 + 2:12), Women = c(20, rep(10, 11)))
  decision <- review(draft, exact = c("Total", "Men", "Women"), repairs = "hide")
  expect_equal(decision$json$decision, "revise")
  expect_output(print(decision), "REVISE")
  expect_true(file.exists(file.path(decision$folder, "review.html")))
})

test_that("protect gives the frame back in its own layout, and reconcile makes it add up", {
  truth <- districts()
  truth$Men <- pmin(truth$Men, truth$Total)
  truth$Women <- truth$Total - truth$Men
  rounded <- protect(truth, base = 5, seed = 7, exact = "Total")
  expect_named(as.data.frame(rounded), names(truth))
  expect_true(all(as.data.frame(rounded)$Men %% 5 == 0))
  even <- as.data.frame(reconcile(as.data.frame(rounded), base = 5, exact = "Total"))
  expect_equal(even$Total, even$Men + even$Women)
  expect_equal(even$Total, truth$Total)
})

test_that("compare has a row per way of publishing", {
  expect_equal(as.data.frame(compare(mechanism = "rounding:5,nearest:5", areas = 20, seeds = 1))$name, c("rounding:5", "nearest:5"))
})

test_that("every picture is drawn", {
  pdf(NULL)
  on.exit(dev.off())
  expect_s3_class(plot(solve("87! = 35 + 45")), "unround")
  expect_error(plot(check(districts(12), base = 5)), "no picture")
})
