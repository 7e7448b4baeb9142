// The program that tells what changes in a directory of its machine (watch.c).

import { HELPER_DIR } from '../storage/mount-points.ts'

/** Its name beside the helper. */
export const WATCH = 'watch'

export const WATCH_PROGRAM = `${HELPER_DIR}/${WATCH}`
