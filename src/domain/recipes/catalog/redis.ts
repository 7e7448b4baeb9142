import { defineRecipe } from '../define.ts'
import { size, volumeGb } from '../params.ts'

export const redis = defineRecipe({
  name: 'redis',
  title: 'Redis 7',
  description: 'A Redis that asks for a password and writes every change to a volume of its own.',
  tags: ['database', 'cache', 'queue'],
  params: { size: size('small'), volumeGb: volumeGb(2) },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'berth.local/redis:7',
      size: params.size,
      env: {
        REDIS_PASSWORD: { secret: 'REDIS_PASSWORD', value: secret.password },
        // What redis-cli within the unit goes by.
        REDISCLI_AUTH: { secret: 'REDIS_PASSWORD', value: secret.password },
      },
      ports: [6379],
      databasePorts: [{ port: 6379, protocol: 'redis' }],
      volume: { mount: '/data', gb: params.volumeGb },
      // While it loads its data it answers something else.
      healthcheck: { cmd: ['sh', '-c', 'redis-cli ping | grep -qx PONG'] },
    }),
  },
  frontDoor: null,
  outputs: {
    REDIS_URL: {
      description: 'Where units of the team reach it.',
      value: ({ secret, host }) => `redis://default:${secret.password}@${host.main}:6379/0`,
    },
    REDIS_PASSWORD: { description: 'What it asks for.', value: ({ secret }) => secret.password },
  },
})
