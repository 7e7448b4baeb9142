// Batches calls: while one run is in progress, new items wait together and form the next run. Under load this turns
// thousands of small statements into a few large ones; a single call is not delayed.

type Waiting<In, Out> = {
  item: In
  resolve: (out: Out) => void
  reject: (error: unknown) => void
}

/** `run` returns one result per item, in order. If it rejects, every call of that run rejects. */
export function batched<In, Out>(
  run: (items: In[]) => Promise<Out[]>,
  maxItems = 500,
): (item: In) => Promise<Out> {
  let waiting: Waiting<In, Out>[] = []
  let busy = false

  const drain = async () => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, maxItems)
      waiting = waiting.slice(maxItems)
      await settle(group, run)
    }
    busy = false
  }

  return (item) =>
    new Promise<Out>((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (busy) return
      busy = true
      // In the next turn of the event loop, so that requests read in this turn are batched.
      setImmediate(() => void drain())
    })
}

async function settle<In, Out>(
  group: Waiting<In, Out>[],
  run: (items: In[]) => Promise<Out[]>,
): Promise<void> {
  try {
    const results = await run(group.map((call) => call.item))
    if (results.length !== group.length) throw new Error('A batch must answer one result per item.')
    results.forEach((result, index) => group[index]?.resolve(result))
  } catch (error) {
    for (const call of group) call.reject(error)
  }
}
