// Copies a store as petstore copy does, and is killed at an exact point: when the first of several batches of animals is over.
import { readConfig } from '../../src/config.ts'
import { copyStore } from '../../src/store/database/copy-store.ts'
import { openStore } from '../../src/store/opening/open-store.ts'

const [from, to] = process.argv.slice(2)
const open = (database: string | undefined) => openStore(readConfig({ database }, {}).database)

await copyStore(await open(from), await open(to), (step) => {
  if (step === 'Copying animals') process.kill(process.pid, 'SIGKILL')
})
