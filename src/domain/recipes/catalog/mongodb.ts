import { defineRecipe } from '../define.ts'
import { identifier, size, volumeGb } from '../params.ts'
import { listensAt } from './listens-at.ts'
import { ADDRESS_FOR_UNITS, FROM_DOCKER_HUB, PASSWORD_OF_USER, USER_WITH_ALL_RIGHTS } from './words.ts'

export const mongodb = defineRecipe({
  name: 'mongodb',
  title: 'MongoDB 7',
  description: `A MongoDB with its own user and volume. ${FROM_DOCKER_HUB}`,
  tags: ['database', 'documents'],
  params: {
    user: identifier(USER_WITH_ALL_RIGHTS, 'app'),
    size: size('medium'),
    volumeGb: volumeGb(2),
  },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'docker.io/library/mongo:7',
      size: params.size,
      env: {
        MONGO_INITDB_ROOT_USERNAME: params.user,
        MONGO_INITDB_ROOT_PASSWORD: { secret: 'MONGODB_PASSWORD', value: secret.password },
      },
      ports: [27017],
      databasePorts: [{ port: 27017, protocol: 'mongodb' }],
      volume: { mount: '/data/db', gb: params.volumeGb },
      // The first start also runs a private server, which listens only on the loopback address.
      healthcheck: { cmd: listensAt(27017, '$(hostname)'), timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    MONGODB_URL: {
      description: ADDRESS_FOR_UNITS,
      value: ({ params, secret, host }) =>
        `mongodb://${params.user}:${secret.password}@${host.main}:27017/?authSource=admin`,
    },
    MONGODB_PASSWORD: { description: PASSWORD_OF_USER, value: ({ secret }) => secret.password },
  },
})
