// One of a kind for each key, made when it is first needed. For keys of which there are few.

export function keptByKey<T>(make: (key: string) => T): (key: string) => T {
  const kept = new Map<string, T>()
  return (key) => {
    const found = kept.get(key)
    if (found !== undefined) return found
    const made = make(key)
    kept.set(key, made)
    return made
  }
}
