// What `console.log` shows of an object in Node, Deno and Bun: one line that tells it from others, in place of all fields.

const inspected = Symbol.for('nodejs.util.inspect.custom')

/** `line`: of one object. Objects of this class show it from now on. */
export function printsAs<T extends object>({ prototype }: { prototype: T }, line: (one: T) => string): void {
  Object.defineProperty(prototype, inspected, {
    value(this: T): string {
      return line(this)
    },
  })
}
