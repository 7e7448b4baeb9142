// V8's own collection, at once: for tests that ask how much memory is held, and not how much was not collected yet.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
export const collectGarbage = runInNewContext('gc') as () => void
