// One connection that reopens with the next use after it broke.

/** Returns the connection in use, or a new one if there is none or the last one has ended. */
export function createReconnecting<C extends { isOver: () => boolean }>(open: () => C): () => C {
  let connection: C | null = null
  return () => {
    if (!connection || connection.isOver()) connection = open()
    return connection
  }
}
