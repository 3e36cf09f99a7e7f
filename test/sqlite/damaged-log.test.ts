// A write-ahead log that is damaged, or not the one of its database: the doctor changes nothing, and no start loses it in silence.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import fs, {
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { openToRead } from '../../src/store/sqlite/open-to-read.ts'
import { readLog } from '../../src/store/sqlite/read-log.ts'
import type { Check } from '../../src/store/database/check.ts'
import { keepDamagedLog } from '../../src/store/sqlite/keep-log.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'

const FRAME = 24 + 4096
const ANIMALS = 120

/** Adds animals, each with a commit of its own, and leaves them in the log. */
const ADD = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
  db.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0')
  for (let added = 0; added < ${ANIMALS}; added += 1)
    db.exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')")`

const animalsIn = (path: string) => {
  using db = new DatabaseSync(path)
  assert.equal(db.prepare('PRAGMA integrity_check').get()!['integrity_check'], 'ok')
  return Number(db.prepare('SELECT count(*) AS animals FROM pets').get()!['animals'])
}

/** Copies the whole log to the database, and is killed then, so that the log stays. */
function copyToDatabase(path: string): void {
  const script = `new (require('node:sqlite').DatabaseSync)(process.argv[1]).exec('PRAGMA wal_checkpoint')`
  spawnSync(process.execPath, ['-e', `${script}; process.kill(process.pid, 'SIGKILL')`, path])
}

/** Returns where the frame begins that ends a commit, counted from the last one. */
function positionOf(log: string, commit: number): number {
  const bytes = readFileSync(log)
  const ends = Array.from({ length: (bytes.length - 32) / FRAME }, (_, frame) => 32 + frame * FRAME)
  return ends.filter((position) => bytes.readUInt32BE(position + 4) > 0).at(commit)!
}

/** Everything that a folder shows of its files. */
function look(place: string) {
  return readdirSync(place).map((name) => {
    const { size, mtimeMs, ino, mode } = statSync(join(place, name))
    const hash = createHash('sha256').update(readFileSync(join(place, name)))
    return [name, size, mtimeMs, ino, mode, hash.digest('hex')].join(' ')
  })
}

function damage(path: string, position: number): void {
  const bytes = readFileSync(path)
  bytes[position]! ^= 4
  writeFileSync(path, bytes)
}

describe('A write-ahead log', { concurrency: 2 }, () => {
  let folder: Folder
  let frames: number
  before(async () => {
    folder = await Folder.create()
    for (const [place, animals] of [
      ['killed', 0],
      ['other', 3000],
    ] as const) {
      const path = folder.at(`${place}/pets.db`)
      await folder.commands.call(0, `migrate --database sqlite:${path} --environment staging`)
      if (animals > 0) await folder.commands.call(0, `seed --count ${animals} --database sqlite:${path}`)
      spawnSync(process.execPath, ['-e', `${ADD}; process.kill(process.pid, 'SIGKILL')`, path])
    }
    // As before its animals were added.
    await folder.commands.call(0, `migrate --database sqlite:${folder.at('new.db')} --environment staging`)
    await folder.commands.call(0, `backup backup.db --database sqlite:${folder.at('new.db')}`)
    frames = (statSync(folder.at('killed/pets.db-wal')).size - 32) / FRAME
    assert.ok(frames > 2 * ANIMALS)
  })
  after(() => folder[Symbol.asyncDispose]())

  /** A copy of the folder with what a killed process left. */
  function killed(name: string) {
    const place = folder.at(name)
    cpSync(folder.at('killed'), place, { recursive: true, preserveTimestamps: true })
    const path = join(place, 'pets.db')
    return { place, path, log: `${path}-wal`, url: `sqlite:${path}` }
  }

  async function examine(url: string) {
    const { checks } = JSON.parse((await commandsOn(url).run('doctor --json')).stdout) as { checks: Check[] }
    return checks.filter(({ state }) => state !== 'ok')
  }

  const states: Record<string, { make: (files: ReturnType<typeof killed>) => void; found: Record<string, RegExp> }> = {
    'after a kill': { make: () => {}, found: {} },
    'without its -shm': { make: ({ path }) => rmSync(`${path}-shm`), found: {} },
    'that is empty': { make: ({ log }) => truncateSync(log, 0), found: {} },
    'that is gone, but for the -shm': { make: ({ log }) => rmSync(log), found: {} },
    'that was closed': { make: ({ path }) => animalsIn(path), found: {} },
    'with a torn end': { make: ({ log }) => damage(log, statSync(log).size - FRAME - 100), found: {} },
    'cut off within a frame': { make: ({ log }) => truncateSync(log, statSync(log).size - 2 * FRAME - 9), found: {} },
    'with a damaged frame': {
      make: ({ log }) => damage(log, 32 + 99 * FRAME + 1000),
      found: { Log: /^\d+ frames, with \d+ commits, follow a damaged frame of the log .*-wal: SQLite ignores them/ },
    },
    'with a damaged frame, and without its -shm': {
      make({ path, log }) {
        damage(log, 32 + 99 * FRAME + 12)
        rmSync(`${path}-shm`)
      },
      found: { Log: /^\d+ frames, with \d+ commits, follow/ },
    },
    'with a damaged header': {
      make: ({ log }) => damage(log, 20),
      found: { Log: new RegExp(`^\\d+ frames, with ${ANIMALS} commits, follow`) },
    },
    'whose first sector was lost': {
      make({ log }) {
        const bytes = readFileSync(log)
        writeFileSync(log, bytes.fill(0, 0, 4096))
      },
      found: { Log: /^\d+ frames, with \d+ commits, follow/ },
    },
    'with a damaged end of the last commit but two': {
      make: ({ log }) => damage(log, positionOf(log, -3) + 1000),
      found: { Log: /^\d+ frames, with 3 commits, follow/ },
    },
    'with a damaged frame, beside a database that has all of it': {
      make({ path, log }) {
        copyToDatabase(path)
        damage(log, positionOf(log, -20) + 1000)
      },
      found: { Log: /does not fit the database: .* the database has what follows a damaged frame of it/ },
    },
    'of another database': {
      make: ({ log }) => copyFileSync(folder.at('other/pets.db-wal'), log),
      found: { Log: /^the log .*-wal does not fit the database: it belongs to another one/ },
    },
    'that is older than a backup in the place of its database': {
      make({ path }) {
        copyFileSync(folder.at('backup.db'), path)
        rmSync(`${path}-shm`)
      },
      found: { Log: /does not fit the database/ },
    },
  }
  for (const [state, { make, found }] of Object.entries(states))
    it(`${state} is examined by the doctor, which changes nothing`, async () => {
      const files = killed(`state ${state}`)
      make(files)
      const seen = look(files.place)
      const problems = await examine(files.url)
      assert.deepEqual(look(files.place), seen)
      const names = problems.map(({ name }) => name)
      assert.deepEqual(names, Object.keys(found), JSON.stringify(problems))
      for (const { name, found: told, fix } of problems) {
        assert.match(told, found[name]!)
        assert.ok(fix)
      }
    })

  it('that a process writes to is examined beside it: nothing is found, and no file of it goes', async () => {
    const { path, place, url } = killed('served')
    const script = `${ADD}; console.log('open')
      setInterval(() => { for (let one = 0; one < 20; one += 1)
        db.exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')")
        db.exec('PRAGMA wal_checkpoint(' + ['PASSIVE', 'RESTART', 'TRUNCATE'][Math.floor(Math.random() * 3)] + ')') }, 1)`
    const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    await once(child.stdout, 'data')
    try {
      for (let times = 0; times < 6; times += 1) assert.deepEqual(await examine(url), [])
      assert.deepEqual(readdirSync(place), ['pets.db', 'pets.db-shm', 'pets.db-wal'])
    } finally {
      child.kill('SIGKILL')
      await ended
    }
    assert.ok(animalsIn(path) > 2 * ANIMALS)
  })

  it('with a damaged frame is copied once by those that start at once, says so in one line, and they go on', async () => {
    const { path, place, log, url } = killed('copied')
    damage(log, 32 + 99 * FRAME + 1000)
    const bytes = readFileSync(log)
    const ends = await Promise.all(
      ['account list', 'key list --account me@pets.example', `backup ${folder.at('copied.db')}`].map((line) =>
        folder.run([...line.split(' '), '--database', url]),
      ),
    )
    const told = ends.map(({ stderr }) => stderr).join('')
    const copies = readdirSync(place).filter((name) => name.includes('.damaged-'))
    assert.equal(copies.length, 1)
    assert.ok(readFileSync(join(place, copies[0]!)).equals(bytes))
    assert.match(told, new RegExp(`follow a damaged frame .* A copy of the log is kept: .*/${basename(copies[0]!)}\n`))
    assert.equal(ends[2]!.code, 0)
    const left = animalsIn(path)
    assert.ok(left > 0 && left < ANIMALS)
  })

  it('with a damaged frame is copied by a service, which says so in its log and serves what is before', async () => {
    const { place, log, url } = killed('serving')
    damage(log, 32 + 99 * FRAME + 1000)
    const bytes = readFileSync(log)
    const { lines } = await serve(folder, { env: { DATABASE_URL: url, PETSTORE_ENVIRONMENT: 'staging' } })
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ msg }) => String(msg))
    assert.equal(warnings.length, 1, warnings.join())
    const [, copy] = /, follow a damaged frame .* A copy of the log is kept: (\S+)$/.exec(warnings[0]!) ?? []
    assert.ok(readFileSync(copy!).equals(bytes))
    assert.ok(copy!.startsWith(place))
  })

  it('with a damaged frame does not stop a start where no copy can be kept: three are there, or the disk is full', async ({
    mock,
  }) => {
    const { path, place, log, url } = killed('bounded')
    damage(log, 32 + 99 * FRAME + 1000)
    const told: string[] = []
    const keep = () => keepDamagedLog(path, 1, (message) => told.push(message))
    const statfs = mock.method(fs, 'statfsSync', () => ({ bsize: 1024 * 1024, bavail: 100 }))
    syncBuiltinESMExports()
    keep()
    statfs.mock.restore()
    syncBuiltinESMExports()
    for (const copy of ['1', '2', '3']) writeFileSync(`${log}.damaged-${copy}`, 'of an earlier start')
    const { code, stderr } = await commandsOn(url).run('account list')
    told.push(stderr)
    for (const [index, why] of ['the disk has too little room', 'there are 3 already, such as '].entries())
      assert.match(told[index]!, new RegExp(`follow a damaged frame .* No copy of the log was kept: ${why}`))
    assert.equal(code, 0)
    assert.equal(readdirSync(place).length, 4)
  })

  it('of another database is refused by all that would merge the two, and both are left alone', async () => {
    const { place, log, url } = killed('foreign')
    copyFileSync(folder.at('other/pets.db-wal'), log)
    rmSync(join(place, 'pets.db-shm'))
    const seen = look(place)
    for (const line of [
      'serve --port 0',
      'account list',
      `backup ${folder.at('none.db')}`,
      `restore ${folder.at('backup.db')}`,
    ])
      await commandsOn(url).refused(1, line, /the log .*-wal does not fit the database: it belongs to another one/)
    assert.deepEqual(look(place), seen)
  })

  it('of a process that ends at any moment is read as it is', async () => {
    const { path } = killed('ending')
    const script = `for (;;) { const db = new (require('node:sqlite').DatabaseSync)(process.argv[1], { timeout: 5000 })
      db.exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')"); db.close() }`
    const child = spawn(process.execPath, ['-e', script, path], { stdio: 'inherit' })
    const ended = once(child, 'exit')
    try {
      for (let times = 0; times < 300; times += 1) {
        assert.equal(readLog(path, 1), undefined)
        openToRead(path).close()
      }
    } finally {
      child.kill('SIGKILL')
      await ended
    }
  })

  it('with the torn end that a power cut leaves is no alarm, and no copy is made', async () => {
    const { path, place, log, url } = killed('torn')
    damage(log, statSync(log).size - FRAME - 100)
    const { stderr } = await commandsOn(url).call(0, 'account list')
    assert.doesNotMatch(stderr, /damaged/)
    assert.deepEqual(readdirSync(place), ['pets.db'])
    assert.equal(animalsIn(path), ANIMALS - 1)
  })
})

describe('A restore that was killed', () => {
  it('leaves nothing that a service takes for a new store, and can be run again', async () => {
    await using folder = await Folder.create()
    const path = folder.at('pets.db')
    // As SQLite writes a backup: a large transaction in a new file.
    const script = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
      db.exec('PRAGMA cache_size = 1; BEGIN; CREATE TABLE pets (name); INSERT INTO pets SELECT zeroblob(500000)')
      process.kill(process.pid, 'SIGKILL')`
    writeFileSync(path, '', { mode: 0o600 })
    spawnSync(process.execPath, ['-e', script, path])
    const commands = commandsOn(`sqlite:${path}`)
    for (const line of ['account list', 'serve --port 0', 'serve --port 0'])
      await commands.refused(1, line, /pets\.db has no store: restore a backup to it, or remove it/)
    await folder.commands.call(0, `migrate --database sqlite:${folder.at('new.db')} --environment staging`)
    await folder.commands.call(0, `backup backup.db --database sqlite:${folder.at('new.db')}`)
    await folder.commands.call(0, `restore backup.db --database sqlite:${path}`)
  })
})
