import { defineRecipe } from '../define.ts'
import { size, volumeGb } from '../params.ts'
import { ADDRESS_FOR_UNITS } from './words.ts'

export const redis = defineRecipe({
  name: 'redis',
  title: 'Redis 7',
  description: 'A Redis with a password, which writes every change to its own volume.',
  tags: ['database', 'cache', 'queue'],
  params: { size: size('small'), volumeGb: volumeGb(2) },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'berth.local/redis:7',
      size: params.size,
      env: {
        REDIS_PASSWORD: { secret: 'REDIS_PASSWORD', value: secret.password },
        // Read by redis-cli in the unit.
        REDISCLI_AUTH: { secret: 'REDIS_PASSWORD', value: secret.password },
      },
      ports: [6379],
      databasePorts: [{ port: 6379, protocol: 'redis' }],
      volume: { mount: '/data', gb: params.volumeGb },
      // While it loads its data it answers with an error, which `-e` makes the exit code.
      healthcheck: { cmd: ['redis-cli', '-e', 'ping'], timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    REDIS_URL: {
      description: ADDRESS_FOR_UNITS,
      value: ({ secret, host }) => `redis://default:${secret.password}@${host.main}:6379/0`,
    },
    REDIS_PASSWORD: { description: 'The password of the server.', value: ({ secret }) => secret.password },
  },
})
