// What the document says of stacks and recipes.

import { type OperationDoc } from './doc.ts'
import { copyOfUnit, costLine, stack, unit } from './values.ts'
import { free, noCredits } from './units.ts'

export const stackDocs: Record<string, OperationDoc> = {
  stackCreate: {
    answer: 'The stack, without units.',
    errors: { 409: 'A stack of that name exists: create units in it by `"stack": "NAME"`.' },
    request: { name: 'shop' },
    response: { ...stack, units: [] },
  },
  stackList: {
    answer: 'A page of stacks with their units. Send `next` as `cursor` for the page after it.',
    cost: free,
    response: { stacks: [stack], next: null },
  },
  stackGet: {
    answer: 'The stack with its units, oldest first.',
    cost: free,
    response: stack,
  },
  stackDestroy: {
    answer: 'The stack with the units that were destroyed.',
    cost: 'Ends all costs of its units.',
    errors: { 502: 'Not every unit could be ended yet. The service tries again by itself.' },
    response: { ...stack, units: [{ ...unit, state: 'destroyed', endpoints: [], sleepsAt: null }] },
  },
  stackFork: {
    answer: 'The copies, in a new stack, and what was copied of each source.',
    cost: 'Each copy costs what any unit of its size costs.',
    errors: {
      402: noCredits,
      409: 'No unit of the stack can be copied now, or the name of the new stack is taken.',
      502: 'The copies could not be made. Nothing of them is left, and the sources continue. Send the call again.',
    },
    request: { into: 'shop-test' },
    response: {
      units: [{ ...copyOfUnit, name: 'web', internalHost: 'web.shop-test.internal' }],
      copied: { web: 'disk' },
      outputs: {},
      stack: 'shop-test',
      skipped: [],
      costLine,
    },
  },
  recipeList: {
    answer: 'Every recipe. GET /v1/recipes/{name} shows its parameters.',
    response: {
      recipes: [
        {
          name: 'postgres',
          title: 'PostgreSQL',
          description: 'A PostgreSQL database with a volume and a generated password.',
          tags: ['database', 'sql'],
        },
      ],
    },
  },
  recipeGet: {
    answer: 'The parameters, outputs and units of the recipe.',
    errors: { 404: 'There is no recipe of that name: GET /v1/recipes lists them.' },
    response: {
      name: 'postgres',
      title: 'PostgreSQL',
      description: 'A PostgreSQL database with a volume and a generated password.',
      tags: ['database', 'sql'],
      params: [
        {
          name: 'database',
          type: 'string',
          options: null,
          defaultValue: '"app"',
          required: false,
          description: 'Name of the database.',
          format: 'lower-case letters, digits and _',
        },
      ],
      outputs: [
        { name: 'DATABASE_URL', description: 'Connection string for the units of the team.', secret: true },
      ],
      units: [
        {
          name: 'postgres',
          image: 'berth.local/postgres:15',
          size: 'small',
          ports: [5432],
          databasePorts: [{ port: 5432, protocol: 'postgres' }],
          volume: { mount: '/var/lib/postgresql', gb: 2 },
        },
      ],
      frontDoor: null,
    },
  },
}
