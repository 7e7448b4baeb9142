// How a time to live is stored: null without an end.

/** Undefined if it is left as it is. */
export function askedTimeToLive(timeToLive: string | undefined): string | null | undefined {
  return timeToLive === 'never' ? null : timeToLive
}

/** Of a new unit. */
export function timeToLiveOf({ timeToLive }: { timeToLive?: string | undefined }): string | null {
  return askedTimeToLive(timeToLive) ?? null
}
