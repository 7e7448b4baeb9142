// What several pages say.

export const NOTHING_TO_SAVE = 'There is nothing to save.'
export const NOT_VALID = 'A field is not valid.'
/** Of a key or a program that is revoked. */
export const CALLS_END = 'Its calls are refused from now on, and its open connections end.'
