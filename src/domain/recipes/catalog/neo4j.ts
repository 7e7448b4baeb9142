import { defineRecipe } from '../define.ts'
import { size, volumeGb } from '../params.ts'
import { listensAt } from './listens-at.ts'
import { FROM_DOCKER_HUB } from './words.ts'

export const neo4j = defineRecipe({
  name: 'neo4j',
  title: 'Neo4j 5',
  description: `A Neo4j graph database (Bolt) with its own volume. ${FROM_DOCKER_HUB}`,
  tags: ['database', 'graph'],
  params: { size: size('medium'), volumeGb: volumeGb(2) },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'docker.io/library/neo4j:5',
      size: params.size,
      env: { NEO4J_AUTH: { secret: 'NEO4J_AUTH', value: `neo4j/${secret.password}` } },
      ports: [7687],
      databasePorts: [{ port: 7687, protocol: 'bolt' }],
      volume: { mount: '/data', gb: params.volumeGb },
      healthcheck: { cmd: listensAt(7687), timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    NEO4J_URL: {
      description: 'The address for units of the team, with the user neo4j.',
      value: ({ host }) => `bolt://${host.main}:7687`,
    },
    NEO4J_PASSWORD: {
      description: 'The password of the user neo4j.',
      value: ({ secret }) => secret.password,
    },
  },
})
