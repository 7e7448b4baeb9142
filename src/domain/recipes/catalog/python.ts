import { defineRecipe } from '../define.ts'
import { APP_PORT, appEnv, appParams, appUnit } from './app.ts'
import { LISTENS_IN_PORT } from './words.ts'

export const python = defineRecipe({
  name: 'python',
  title: 'Python 3.11',
  description:
    'A web application in Python. It installs the dependencies in requirements.txt or pyproject.toml and runs main.py, app.py ' +
    `or server.py. ${LISTENS_IN_PORT}`,
  tags: ['runtime', 'web'],
  params: appParams('The files of the application, with requirements.txt if it has one.', {
    'main.py': "import http.server, os\nhttp.server.test(port=int(os.environ['PORT']))",
  }),
  secrets: [],
  units: {
    main: ({ params }) => ({
      ...appUnit,
      image: 'berth.local/python:3.11',
      size: params.size,
      env: { ...appEnv, ...params.env },
      files: params.files,
    }),
  },
  frontDoor: { unit: 'main', port: APP_PORT },
  outputs: {},
})
