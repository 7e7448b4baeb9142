// Run before the tests of every file: what fast-check draws is as large as its test allows. By default an array of up to
// 400 elements has ten at most, and a claim about the 121st call of a minute then holds of nothing.

import fc from 'fast-check'

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true })
