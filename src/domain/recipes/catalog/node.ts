import { defineRecipe } from '../define.ts'
import { APP_PORT, appEnv, appParams, appUnit } from './app.ts'
import { FILES_OF_NODE, LISTENS_IN_PORT } from './words.ts'

export const node = defineRecipe({
  name: 'node',
  title: 'Node.js 24',
  description:
    'A web application in Node.js. It installs the dependencies in package.json, by its lock file if there is one. It runs ' +
    `the script "start", else "main" of package.json, server.js, index.js or app.js. ${LISTENS_IN_PORT}`,
  tags: ['runtime', 'web', 'javascript'],
  params: appParams(FILES_OF_NODE, {
    'server.js':
      "require('http').createServer((_, answer) => answer.end('hello')).listen(require('process').env.PORT)",
  }),
  secrets: [],
  units: {
    main: ({ params }) => ({
      ...appUnit,
      image: 'berth.local/node:24',
      size: params.size,
      env: { ...appEnv, ...params.env },
      files: params.files,
    }),
  },
  frontDoor: { unit: 'main', port: APP_PORT },
  outputs: {},
})
