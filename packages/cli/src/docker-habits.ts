// What people type who know docker, and what does it here.

/** Commands. */
export const otherCommands: Readonly<Record<string, string>> = {
  images: 'berth run IMAGE: an image is pulled or built when a unit needs it',
  image: 'berth run IMAGE: an image is pulled or built when a unit needs it',
  pull: 'berth run IMAGE: an image is pulled when a unit needs it',
  push: 'berth recipe run docker, whose unit builds and pushes images',
  build: 'berth recipe run docker, whose unit builds images',
  rmi: 'berth rm UNIT: images are kept for all units, and the operator removes them',
  kill: 'berth stop UNIT, or berth rm UNIT',
  pause: 'berth sleep UNIT --now',
  unpause: 'berth wake UNIT',
  attach: 'berth logs -f UNIT, or berth shell UNIT',
  top: 'berth stats UNIT, or berth exec UNIT -- ps',
  commit: 'berth fork UNIT',
  create: 'berth run IMAGE',
  port: 'berth url UNIT',
  compose: 'berth stack ls, berth recipe ls',
  up: 'berth run IMAGE --stack NAME, or berth recipe run NAME',
  down: 'berth stack rm NAME',
  container: 'the same without this word: berth ls, berth run, berth rm',
  volume: 'berth run --volume PATH:GB IMAGE: a volume belongs to its unit',
  network: 'berth egress UNIT: units of a team reach each other by name',
  rename: 'berth fork UNIT --name NAME, then berth rm UNIT',
  update: 'berth egress, berth sleep: a size is chosen when a unit is made',
  system: 'berth quota, berth usage',
  destroy: 'berth rm UNIT',
  delete: 'berth rm UNIT',
  list: 'berth ls',
  ssh: 'berth shell UNIT',
  info: 'berth whoami, berth quota',
  version: 'berth --version',
}

const size = '--size small: nano, small, medium or large'

/** Options, behind their command. */
const otherOptions: Readonly<Record<string, string>> = {
  'run -v': '--volume PATH:GB for a disk of its own, or berth cp for files',
  'run -w': "berth run IMAGE -- sh -c 'cd DIR && CMD', or berth exec -w DIR",
  'run --workdir': "berth run IMAGE -- sh -c 'cd DIR && CMD', or berth exec -w DIR",
  'run -u': 'berth run IMAGE, then berth exec -u USER UNIT -- CMD',
  'run --user': 'berth run IMAGE, then berth exec -u USER UNIT -- CMD',
  'run -m': size,
  'run --memory': size,
  'run --cpus': size,
  'run --network': '--egress open, listed or none, and --siblings',
  'run --net': '--egress open, listed or none, and --siblings',
  'run --entrypoint': 'berth run IMAGE -- CMD…, which runs a command beside it',
  'run --restart': 'berth start UNIT: a unit whose process has ended stays stopped',
  'run --privileged': '--nested, for docker or buildah in a unit',
  'run -l': '--metadata NAME=VALUE',
  'run --label': '--metadata NAME=VALUE',
  'run --publish': '--port PORT, then berth url UNIT',
  'run --env-file': '-e NAME=VALUE, again for more',
  'ps -a': 'berth ls --all',
  'ps --all': 'berth ls --all',
  'ps -q': 'berth ls --quiet',
  'rm -r': 'berth rm -f UNIT: a unit goes with its disk',
  'rm -v': 'berth rm UNIT: a unit goes with its disk',
  'stop -t': 'berth stop UNIT',
  'stop --time': 'berth stop UNIT',
  'start -a': 'berth start UNIT, then berth logs -f UNIT',
  'inspect -f': 'berth inspect UNIT | jq .',
  'inspect --format': 'berth inspect UNIT | jq .',
}

/** For an option as it was typed; null where nothing is known of it. */
export const otherOption = (command: string, option: string): string | null =>
  otherOptions[`${command} ${option}`] ?? null
