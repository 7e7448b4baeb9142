// Runs JavaScript and TypeScript. Orders come as lines of JSON on the descriptor 3, answers go as lines on 4. The code runs in the
// main thread, as a console's does: `const` may be declared again, and `await` stands at the top. A thread beside it takes the
// orders, so that a loop without end can be stopped: then it says the end of the run itself.

import { createReadStream, writeSync } from 'node:fs'
import { Session } from 'node:inspector'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { createInterface } from 'node:readline'
import { inspect } from 'node:util'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

const MAX_CHARACTERS = 64 * 1024

const interrupted = { type: 'error', name: 'Interrupted', value: 'The code was interrupted.', traceback: [] }

const tell = (event) => {
  const line = Buffer.from(`${JSON.stringify(event)}\n`)
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(4, line, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

if (isMainThread) serveMain()
else serveOrders()

function serveMain() {
  const require = createRequire(`${process.cwd()}/`)
  const display = (value, mime) => tell({ type: 'result', data: bundle(value, mime), main: false })
  Object.assign(globalThis, { require, display })
  const session = new Session()
  session.connect()
  const post = (method, params) =>
    new Promise((resolve, reject) =>
      session.post(method, params, (error, answer) => (error ? reject(error) : resolve(answer))),
    )
  process.on('uncaughtException', (error) => tell(failure(error)))
  process.on('unhandledRejection', (error) => tell(failure(error)))
  process.on('SIGINT', () => {})
  // By name, since a result comes as a reference that only the code's own context can follow.
  const results = Symbol.for('berth.result')
  Object.defineProperty(globalThis, results, {
    value: (value) => value !== undefined && tell({ type: 'result', data: bundle(value), main: true }),
  })
  const beside = new Worker(new URL(import.meta.url))
  beside.on('message', async ({ number, expression }) => {
    await run(post, expression)
    beside.postMessage({ number })
  })
}

function bundle(value, mime) {
  if (mime !== undefined)
    return { [mime]: typeof value === 'string' ? value : Buffer.from(value).toString('base64') }
  const text = inspect(value, { maxArrayLength: 1000, maxStringLength: MAX_CHARACTERS }).slice(
    0,
    MAX_CHARACTERS,
  )
  const data = { 'text/plain': text }
  if (value !== null && typeof value === 'object' && !(value instanceof Error)) {
    try {
      const json = JSON.stringify(value)
      if (json !== undefined && json.length <= 1024 * 1024) data['application/json'] = JSON.parse(json)
    } catch {
      // It has no JSON: a cycle, or a large number.
    }
  }
  return data
}

function failure(error) {
  if (/Execution was terminated/.test(error?.message)) return interrupted
  if (!(error instanceof Error))
    return { type: 'error', name: 'Error', value: inspect(error).slice(0, MAX_CHARACTERS), traceback: [] }
  return { type: 'error', name: error.name, value: error.message, traceback: String(error.stack).split('\n') }
}

function serveOrders() {
  const session = new Session()
  session.connectToMainThread()
  let number = 0
  let current = null
  const stop = () => {
    const stopped = current
    if (stopped === null) return
    session.post('Runtime.terminateExecution', () => {
      // Time for the run to say its own end, if it still can.
      setTimeout(() => {
        if (stopped !== current) return
        tell(interrupted)
        stopped.end()
      }, 50)
    })
  }
  const begin = async ({ code, typescript }) => {
    const { promise, end } = waiting()
    current = { number: ++number, end }
    try {
      parentPort.postMessage({ number, expression: typescript ? plain(code) : code })
      await promise
    } catch (error) {
      tell(failure(error))
    }
    current = null
    tell({ type: 'done' })
  }
  parentPort.on('message', (ended) => {
    if (ended.number === current?.number) current.end()
  })
  let last = Promise.resolve()
  const orders = createInterface({ input: createReadStream(null, { fd: 3 }) })
  orders.on('line', (line) => {
    const order = JSON.parse(line)
    if (order.interrupt) stop()
    else last = last.then(() => begin(order))
  })
  orders.on('close', () => process.exit(0))
}

function waiting() {
  let end
  const promise = new Promise((resolve) => (end = resolve))
  return { promise, end }
}

async function run(post, expression) {
  try {
    const { result, exceptionDetails } = await post('Runtime.evaluate', {
      expression,
      replMode: true,
      awaitPromise: true,
    })
    if (exceptionDetails) return tell(described(exceptionDetails))
    if (result.type === 'undefined') return
    const shown = {
      functionDeclaration: 'function (value) { globalThis[Symbol.for("berth.result")](value) }',
    }
    await post('Runtime.callFunctionOn', { ...shown, executionContextId: 1, arguments: [argumentOf(result)] })
  } catch (error) {
    tell(failure(error))
  }
}

function argumentOf({ objectId, unserializableValue, value }) {
  if (objectId !== undefined) return { objectId }
  return unserializableValue === undefined ? { value } : { unserializableValue }
}

function described({ exception, text }) {
  if (exception?.className && exception.description) {
    const [first = '', ...rest] = exception.description.split('\n')
    const [name, ...value] = first.split(': ')
    return {
      type: 'error',
      name: name.replace(/^Uncaught /, ''),
      value: value.join(': '),
      traceback: [first, ...ofCode(rest)],
    }
  }
  const thrown = exception?.description ?? exception?.value ?? text
  return { type: 'error', name: 'Error', value: String(thrown), traceback: [] }
}

/** Without what runs the code. */
function ofCode(lines) {
  const end = lines.findIndex((line) => line.includes('Session.post') || line.includes('node_kernel.mjs'))
  return end < 0 ? lines : lines.slice(0, end)
}

/** The same without its types. What the code names stays, also where it is not used. */
function plain(code) {
  return stripTypeScriptTypes(code, { mode: 'transform' })
}
