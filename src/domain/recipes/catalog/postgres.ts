import { defineRecipe } from '../define.ts'
import { identifier, size, volumeGb } from '../params.ts'
import { postgresUnit } from './postgres-unit.ts'
import { ADDRESS_FOR_UNITS, PASSWORD_OF_USER } from './words.ts'

export const postgres = defineRecipe({
  name: 'postgres',
  title: 'PostgreSQL 15',
  description: 'A PostgreSQL database with its own user, password and volume.',
  tags: ['database', 'sql'],
  params: {
    database: identifier('The database to create.', 'app', { taken: ['template0', 'template1'] }),
    user: identifier('The user that owns it, with all rights.', 'app', { taken: ['pg_*', 'none', 'public'] }),
    size: size('small'),
    volumeGb: volumeGb(2),
  },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => postgresUnit({ ...params, password: secret.password }),
  },
  frontDoor: null,
  outputs: {
    DATABASE_URL: {
      description: ADDRESS_FOR_UNITS,
      value: ({ params, secret, host }) =>
        `postgres://${params.user}:${secret.password}@${host.main}:5432/${params.database}`,
    },
    POSTGRES_PASSWORD: { description: PASSWORD_OF_USER, value: ({ secret }) => secret.password },
  },
})
