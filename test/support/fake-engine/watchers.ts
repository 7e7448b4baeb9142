// Those who are told of something until their signal aborts.

export function createWatchers<T>() {
  const watchers = new Set<(item: T) => void>()
  return {
    add: (watcher: (item: T) => void, gone: AbortSignal): void => {
      watchers.add(watcher)
      gone.addEventListener('abort', () => watchers.delete(watcher), { once: true })
    },
    tell: (item: T): void => {
      for (const watcher of watchers) watcher(item)
    },
  }
}
