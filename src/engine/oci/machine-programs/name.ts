// The program that sets the hostname of its machine (name.c).

import { HELPER_DIR } from '../storage/mount-points.ts'

/** Its name beside the helper. */
export const NAME = 'name'

export const namingCommand = [`${HELPER_DIR}/${NAME}`]
