import { defineRecipe } from '../define.ts'
import { env, size } from '../params.ts'

export const debian = defineRecipe({
  name: 'debian',
  title: 'Debian 12',
  description: 'A Debian that waits for commands: apt, curl and a shell, and nothing that runs by itself.',
  tags: ['shell'],
  params: { env: env(), size: size('small') },
  secrets: [],
  units: {
    main: ({ params }) => ({ image: 'berth.local/debian:12', size: params.size, env: params.env }),
  },
  frontDoor: null,
  outputs: {},
})
