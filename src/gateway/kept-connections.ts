// How long connections are kept between two requests, to units and to the gateways of other hosts.

/** Shorter than the five seconds after which many servers close, so that few requests meet a closing connection. */
export const IDLE_MS = 4000
