import { defineRecipe } from '../define.ts'
import { env, size } from '../params.ts'

export const debian = defineRecipe({
  name: 'debian',
  title: 'Debian 12',
  description:
    'A Debian system with apt, curl and a shell, which waits for commands and runs nothing by itself.',
  tags: ['shell'],
  params: { env: env(), size: size('small') },
  secrets: [],
  units: {
    main: ({ params }) => ({ image: 'berth.local/debian:12', size: params.size, env: params.env }),
  },
  frontDoor: null,
  outputs: {},
})
