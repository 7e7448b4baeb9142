// The connections that machines have open through this process: each can be cut by machine, or by what the rules say.

export type OpenConnection = {
  name: string
  port: number
  /** Where it leads; absent if that is not known. */
  address?: string | undefined
  cut: () => void
  /** The placeholders whose values were sent on it; absent if it passes unread. */
  used?: ReadonlySet<string>
}

export type OpenConnections = {
  /** Returns a function that forgets it. */
  add(machine: string, connection: OpenConnection): () => void
  /** Cuts those of a machine for which `stays` says no. */
  sift(machine: string, stays: (connection: OpenConnection) => boolean): void
  machines(): string[]
}

export function createOpenConnections(): OpenConnections {
  const open = new Map<string, Set<OpenConnection>>()
  return {
    add(machine, connection) {
      const own = open.get(machine) ?? new Set()
      open.set(machine, own.add(connection))
      return () => {
        own.delete(connection)
        if (own.size === 0 && open.get(machine) === own) open.delete(machine)
      }
    },
    sift(machine, stays) {
      for (const connection of open.get(machine) ?? []) if (!stays(connection)) connection.cut()
    },
    machines: () => [...open.keys()],
  }
}
