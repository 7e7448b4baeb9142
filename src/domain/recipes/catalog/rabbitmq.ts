import { defineRecipe } from '../define.ts'
import { identifier, size, volumeGb } from '../params.ts'
import { listensAt } from './listens-at.ts'
import { ADDRESS_FOR_UNITS, PASSWORD_OF_USER, USER_WITH_ALL_RIGHTS } from './words.ts'

export const rabbitmq = defineRecipe({
  name: 'rabbitmq',
  title: 'RabbitMQ 3',
  description: 'A RabbitMQ broker (AMQP 0-9-1) with its own user and volume.',
  tags: ['queue', 'broker'],
  params: {
    // RabbitMQ accepts this user only from inside the unit.
    user: identifier(USER_WITH_ALL_RIGHTS, 'app', { taken: ['guest'] }),
    size: size('medium'),
    volumeGb: volumeGb(2),
  },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'berth.local/rabbitmq:3',
      size: params.size,
      env: {
        RABBITMQ_DEFAULT_USER: params.user,
        RABBITMQ_DEFAULT_PASS: { secret: 'RABBITMQ_PASSWORD', value: secret.password },
      },
      ports: [5672],
      databasePorts: [{ port: 5672, protocol: 'amqp' }],
      volume: { mount: '/var/lib/rabbitmq', gb: params.volumeGb },
      healthcheck: { cmd: listensAt(5672), timeoutMs: 240_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    AMQP_URL: {
      description: ADDRESS_FOR_UNITS,
      value: ({ params, secret, host }) => `amqp://${params.user}:${secret.password}@${host.main}:5672`,
    },
    RABBITMQ_PASSWORD: { description: PASSWORD_OF_USER, value: ({ secret }) => secret.password },
  },
})
