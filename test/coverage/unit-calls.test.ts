// The calls of units and stacks that tests of several hosts send (support/unit-calls.ts) are those of all routes.

import { expect, it } from 'vitest'
import { routes } from '../../src/api/routes.ts'
import { stackCalls, unitCalls } from '../support/unit-calls.ts'

/** Made by POST /v1/units and POST /v1/stacks themselves, and by no unit. */
const creating = ['POST /v1/units', 'POST /v1/stacks']

it('each route of a unit or a stack is called', () => {
  const there = routes
    .map(({ method, path }) => `${method} ${path}`)
    .filter((each) => /\/(units|stacks)/.test(each))
  const called = [...creating, ...stackCalls.routes, ...unitCalls.flatMap((each) => each.routes)]
  expect(called.toSorted()).toEqual(there.toSorted())
})
