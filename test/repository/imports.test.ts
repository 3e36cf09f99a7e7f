// The import lines of src: they point one way, in no circle, and the borders that design drew are kept.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SETTINGS } from '../../src/config.ts'
import { ERRORS } from '../../src/contract/errors.ts'
import { OPERATIONS } from '../../src/contract/operations.ts'

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
)
const textOf = (file: string) => readFileSync(join(SRC, file), 'utf8')

/** The files of ours that a file imports, for values or only for types, at its start or on demand. */
function importsOf(file: string): string[] {
  const specifiers = textOf(file).matchAll(/(?:\bfrom |\bimport\(|^import )'(\.[^']*)'/gm)
  return [...specifiers].map(([, specifier = '']) => normalize(join(dirname(file), specifier)))
}

/**
 * Each layer may use those before it: folders, groups in them, and single files. A folder stands for what is in it and in no
 * group: `http` for `http/app.ts`.
 */
const LAYERS = [
  'contract/text',
  'contract',
  'timing.ts',
  'own-files.ts',
  'log.ts',
  'store',
  'store/database',
  'store/sqlite/failures.ts',
  'store/sqlite/transactions',
  'store/sqlite',
  'store/postgres/citus/node-failures.ts',
  'store/postgres/pool',
  'store/postgres/citus/distributed.ts',
  'store/postgres',
  'store/postgres/citus',
  'store/opening',
  'pet-files',
  'config.ts',
  'accounts',
  'http/html',
  'http/call',
  'http/connections',
  'http/metrics.ts',
  'http/body.ts',
  'http/answers',
  'http/tracing',
  'http/operations',
  'http/app.ts',
  'http/mcp',
  'http',
  'console/every-page',
  'console/animals',
  'console/people',
  'console/developers',
  'console',
  'workers',
  'serving.ts',
  'worker.ts',
  'server.ts',
  'cli',
  'cli/commands',
  'cli/commands.ts',
  'cli/help.ts',
  'cli/run.ts',
  'main.ts',
]
/** Returns the number of the layer that names a file most closely. */
function layerOf(file: string): number {
  const parts = file.split('/')
  const names = parts.map((_, index) => parts.slice(0, parts.length - index).join('/'))
  return LAYERS.indexOf(names.find((name) => LAYERS.includes(name)) ?? '')
}
const within = (folder: string) => files.filter((file) => file.startsWith(folder))

function assertNone(of: readonly string[], target: (imported: string) => boolean): void {
  const found = of.flatMap((file) =>
    importsOf(file)
      .filter(target)
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(found, [])
}

describe('Imports', () => {
  it('are found at all, and lead to files that are there', () => {
    assert.ok(files.length > 40)
    assert.ok(importsOf('serving.ts').includes('http/app.ts'))
    assertNone(files, (imported) => !files.includes(imported))
  })

  it('point one way: contract, store, accounts, http and console, server, cli', () => {
    const used = new Set(files.map(layerOf))
    assert.deepEqual(
      LAYERS.filter((_, index) => !used.has(index)),
      [],
    )
    for (const file of files) {
      assert.notEqual(layerOf(file), -1, `${file} is in no layer`)
      assertNone([file], (imported) => layerOf(imported) > layerOf(file))
    }
  })

  it('form no circle', () => {
    const done = new Set<string>()
    const visit = (file: string, path: readonly string[]): void => {
      assert.ok(!path.includes(file), `a circle: ${[...path, file].join(' -> ')}`)
      if (done.has(file)) return
      for (const imported of importsOf(file)) visit(imported, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
  })

  it('load no engine before a command opens a database', () => {
    const loaded = new Set(['main.ts'])
    for (const file of loaded)
      for (const [, from = ''] of files.includes(file)
        ? textOf(file).matchAll(/^import (?!type )[^']*'([^']+)'/gm)
        : [])
        loaded.add(from.startsWith('.') ? normalize(join(dirname(file), from)) : from)
    assert.ok(loaded.has('cli/commands/key.ts'))
    assert.deepEqual(
      ['node:sqlite', 'postgres', 'store/database/migrations.ts'].filter((name) => loaded.has(name)),
      [],
    )
  })

  const engineOf = (file: string) => /^store\/(sqlite|postgres)\//.exec(file)?.[1]
  const isEngine = (file: string) => engineOf(file) !== undefined || file === 'store/opening/open-store.ts'

  it('keep http from knowing an engine or the console', () => {
    assertNone(within('http/'), (imported) => isEngine(imported) || imported.startsWith('console/'))
  })

  it('keep the console from knowing an engine, or more of http than what every route gets', () => {
    const known =
      /^http\/(?:call\/|html\/|body\.ts|reach\.ts|answers\/content\.ts|connections\/(?:node-http|client-left)\.ts)/
    assertNone(
      within('console/'),
      (imported) => isEngine(imported) || (imported.startsWith('http/') && !known.test(imported)),
    )
  })

  it('keep an engine from knowing another engine', () => {
    for (const file of files.filter(engineOf))
      assertNone([file], (imported) => isEngine(imported) && engineOf(imported) !== engineOf(file))
  })

  it('keep HTTP and its libraries out of contract, store and accounts', () => {
    for (const file of [...within('contract/'), ...within('store/'), ...within('accounts/')]) {
      assert.doesNotMatch(textOf(file), /from 'node:https?'/, file)
    }
  })

  it('leave writes of animals and their events to one file, so that no way in or out lacks limits or words', () => {
    const writes = (target: string) => {
      const pattern = new RegExp(String.raw`\b(?:INTO|DELETE FROM|UPDATE)\s+${target}|insertRows\(\s*${target}`, 'i')
      return files.filter((file) => pattern.test(textOf(file))).toSorted()
    }
    assert.deepEqual(writes(String.raw`(?:'|"|public\.)?pets\b`), ['store/pet-writes.ts'])
    // Any table: whole records of copies, and the table of migrations.
    const anyTable = ['store/postgres/migrate.ts', 'store/records.ts', 'store/sql.ts', 'store/sqlite/migrate.ts']
    assert.deepEqual(writes(String.raw`(?:\$\{|name\b)`), anyTable)
    assert.deepEqual(
      files.filter((file) => /action: 'pet\./.test(textOf(file))),
      ['store/pet-writes.ts'],
    )
  })

  it('leave the files beside the code to own-files.ts: the executable has no such folder', () => {
    // They find a program to start, and a module of Node.js.
    const others = new Set(['own-files.ts', 'main.ts', 'workers/workers.ts', 'http/connections/node-http.ts'])
    for (const file of files.filter((name) => !others.has(name)))
      assert.doesNotMatch(textOf(file), /import\.meta|__dirname/, file)
  })

  it('leave the process to main.ts, and to those that start a worker and are one', () => {
    const programs = new Set(['main.ts', 'workers/workers.ts', 'worker.ts'])
    for (const file of files.filter((name) => !programs.has(name))) {
      assert.doesNotMatch(textOf(file), /\bprocess\.[a-z]|from 'node:process'/, file)
    }
  })
})

describe('Folders', () => {
  it('of src and test have at most 20 files: what belongs together gets a folder with a name', () => {
    const folders = ['src', 'test'].flatMap((place) => {
      const all = readdirSync(join(dirname(SRC), place), { recursive: true, withFileTypes: true })
      return Object.entries(
        Object.groupBy(
          all.filter((each) => each.isFile()),
          (each) => each.parentPath,
        ),
      )
    })
    assert.ok(folders.length > 20)
    assert.deepEqual(
      folders.flatMap(([folder, inside]) => (inside!.length > 20 ? [`${folder}: ${inside!.length}`] : [])),
      [],
    )
  })
})

describe('What nothing uses', () => {
  const ROOT = dirname(SRC)
  const places = ['src', 'test', 'client', 'assurance', 'docs', 'deploy']
  const code = places
    .flatMap((place) =>
      readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' }).map((file) => join(place, file)),
    )
    .filter((file) => file.endsWith('.ts') && !file.includes('node_modules') && !file.includes('dist/'))
    .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const)

  it('is no file of src', () => {
    const reached = new Set(['main.ts', 'worker.ts', ...files.flatMap(importsOf)])
    assert.deepEqual(
      files.filter((file) => !reached.has(file)),
      [],
    )
  })

  /** Returns the names that are only in the place that lists them. */
  const unread = (names: readonly string[], place: string) => {
    const texts = files.filter((file) => !file.startsWith(place)).map(textOf)
    return names.filter((name) => !texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
  }

  it('is no setting and no error code', () => {
    assert.deepEqual(unread(Object.keys(SETTINGS), 'config.ts'), [])
    const ofBodies = new Set<string | undefined>(OPERATIONS.map(({ body }) => body?.invalid))
    const made = Object.keys(ERRORS).filter((name) => !ofBodies.has(name))
    assert.deepEqual(unread(made, 'contract/'), [])
  })

  it('is no export of src, also if its own file uses it', () => {
    const unused = files.flatMap((file) => {
      const others = code.filter(([other]) => other !== join('src', file)).map(([, text]) => text)
      const exported = textOf(file).matchAll(/^export (?:async )?(?:const|function\*?|class|interface|type) (\w+)/gm)
      return [...exported]
        .map(([, name = '']) => name)
        .filter((name) => {
          const word = new RegExp(`\\b${name}\\b`)
          return !others.some((text) => word.test(text))
        })
        .map((name) => `${file} exports ${name}`)
    })
    assert.deepEqual(unused, [])
  })
})

describe('Imports outside of src', () => {
  const ROOT = dirname(SRC)
  /** What else a folder may import from. */
  const ALLOWED: Record<string, readonly string[]> = {
    'test/harness': ['src'],
    'assurance/drills': ['src', 'test/harness'],
    'assurance/bench': ['src', 'test/harness'],
  }
  for (const [folder, allowed] of Object.entries(ALLOWED)) {
    it(`keep ${folder} from using more than ${allowed.join(' and ')}`, () => {
      const own = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && !file.includes('node_modules'))
        .map((file) => join('..', folder, file))
      assert.ok(own.length > 10)
      const inside = [folder, ...allowed].map((name) => join('..', name, '/'))
      assertNone(own, (imported) => !inside.some((start) => imported.startsWith(start)))
    })
  }
})
