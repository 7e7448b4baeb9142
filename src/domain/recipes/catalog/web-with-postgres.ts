import { defineRecipe } from '../define.ts'
import { size, volumeGb } from '../params.ts'
import { APP_PORT, appEnv, appParams, appUnit } from './app.ts'
import { postgresUnit } from './postgres-unit.ts'
import { FILES_OF_NODE } from './words.ts'

export const webWithPostgres = defineRecipe({
  name: 'web-with-postgres',
  title: 'Node.js with PostgreSQL',
  description:
    'A web application in Node.js, as in the recipe node, with its own PostgreSQL, whose address is in ' +
    'DATABASE_URL. They share a stack, so they can sleep and be forked together.',
  tags: ['web', 'database', 'javascript', 'stack'],
  params: {
    ...appParams(FILES_OF_NODE, {
      'server.js': `require('http').createServer((_, answer) => answer.end(new URL(require('process').env.DATABASE_URL).hostname)).listen(require('process').env.PORT)`,
    }),
    databaseSize: size('small', 'The size of the database: its CPU and memory.'),
    volumeGb: volumeGb(2),
  },
  secrets: ['password'],
  units: {
    db: ({ params, secret }) =>
      postgresUnit({
        database: 'app',
        user: 'app',
        password: secret.password,
        size: params.databaseSize,
        volumeGb: params.volumeGb,
      }),
    main: ({ params, secret, unit }) => ({
      ...appUnit,
      image: 'berth.local/node:24',
      size: params.size,
      env: {
        ...appEnv,
        // The bare name, which in a fork of the stack refers to the fork's own database.
        DATABASE_URL: {
          secret: 'DATABASE_URL',
          value: `postgres://app:${secret.password}@${unit.db}:5432/app`,
        },
        ...params.env,
      },
      files: params.files,
    }),
  },
  frontDoor: { unit: 'main', port: APP_PORT },
  outputs: {
    DATABASE_URL: {
      description: "The database's address for units of the team.",
      value: ({ secret, host }) => `postgres://app:${secret.password}@${host.db}:5432/app`,
    },
    POSTGRES_PASSWORD: {
      description: 'The password of the user app.',
      value: ({ secret }) => secret.password,
    },
  },
})
