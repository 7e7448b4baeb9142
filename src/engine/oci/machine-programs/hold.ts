// The program that holds descriptors open on the host (hold.c).

/** Its name beside the helper. */
export const HOLD = 'hold'
