// The documents say what the code does: settings, commands and links that are there.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import packageJson from '../../package.json' with { type: 'json' }
import { LIST_PARAMETERS, FILTER_NAMES } from '../../src/contract/list-query.ts'
import { BASE_PATH, longDate, OPERATIONS, VERSION } from '../../src/contract/operations.ts'
import { FIELD_NAMES, INT64_FIELDS, PET_STATUSES } from '../../src/contract/pets.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { ROUTES } from '../../src/console/console.ts'
import { type Setting, SETTINGS } from '../../src/config.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const DOCUMENTS = globSync(['*.md', 'docs/*.md', '{assurance,client,deploy}/README.md'], { cwd: root })

describe('the documents', () => {
  it('list every setting with its flag, variable, default, allowed values and meaning', () => {
    const configuration = read('docs/configuration.md')
    for (const { flag, variable, default: fallback, allowed, meaning } of Object.values<Setting>(SETTINGS)) {
      const row = `| \`--${flag}\` | \`${variable}\` | ${fallback === undefined ? '' : `\`${fallback}\``} | ${allowed} | ${meaning} |`
      assert.ok(configuration.includes(row), `docs/configuration.md lacks the row ${row}`)
    }
  })

  it('tells of every command what it changes, and what undoes it', () => {
    const rows = read('docs/data.md').split('\n| Command | Changes | Undone by |\n')[1]!.split('\n\n')[0]!
    const told = Array.from(
      rows.matchAll(/^\|([^|]*)\|/gm),
      ([, cell = '']) => cell.match(/(?<=`)[a-z][a-z ]*(?=`)/g) ?? [],
    )
    const names = COMMANDS.map(({ name }) => name)
    assert.deepEqual(told.flat().toSorted(), names.toSorted())
  })

  it('list every page of the console', () => {
    const rows = read('docs/console.md')
      .match(/^\| `\/.*? \|/gm)!
      .join()
    // Only reloaded by a page; only a redirect.
    const others = new Set(['/keys/ID/first-request', '/account/password'])
    const pages = ROUTES.flatMap(({ method, path }) =>
      method === 'GET' ? [path.replaceAll(/\{(\w+)\}/g, (_, name: string) => name.toUpperCase())] : [],
    )
    assert.deepEqual(
      pages.filter((page) => !others.has(page) && !new RegExp(`\`${page}[\`#]`).test(rows)),
      [],
    )
  })

  it('name every operation, field and filter where callers and reviewers read of them', () => {
    const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``)
    const rowOf = (id: string) => {
      const { method, path } = OPERATIONS.find((operation) => operation.id === id)!
      return `| \`${method} ${BASE_PATH}${path}\` `
    }
    const REQUIRED: [file: string, line: string, names: readonly string[]][] = [
      ...OPERATIONS.map(({ id, deprecation }): [string, string, string[]] => [
        'README.md',
        rowOf(id),
        deprecation === undefined ? [] : ['Deprecated', longDate(deprecation.sunset)],
      ]),
      ['README.md', rowOf('listPets'), quoted(LIST_PARAMETERS.map(({ name }) => name))],
      ['README.md', rowOf('createPet'), quoted(FIELD_NAMES)],
      ['README.md', rowOf('listPets'), PET_STATUSES],
      ['README.md', '| **64-bit integers** ', quoted(INT64_FIELDS)],
      ['docs/threat-model.md', '**API3 ', quoted(FIELD_NAMES)],
      ['docs/compatibility.md', ' are int64.', quoted(INT64_FIELDS)],
      ...OPERATIONS.map(({ id }): [string, string, string[]] => ['client/README.md', `await petstore.${id}(`, []]),
      ['client/README.md', 'await petstore.listPets({', FILTER_NAMES.map((name) => `${name}:`)],
      ['client/README.md', 'const rex = await petstore.createPet({', FIELD_NAMES.map((name) => `${name}:`)],
      ['client/README.md', ' are 64-bit integers.', quoted(INT64_FIELDS)],
    ]
    for (const [file, start, names] of REQUIRED) {
      const lines = read(file).split('\n')
      const line = lines.find((each) => each.includes(start))
      assert.ok(line !== undefined, `${file} has no line with ${start}`)
      for (const name of names) assert.ok(line.includes(name), `${file} does not name ${name} in: ${line}`)
    }
  })

  it('name the version of package.json, which the program says too', () => {
    assert.equal(VERSION, packageJson.version)
    const files = ['README.md', ...globSync('deploy/{README.md,kubernetes/*/kustomization.yaml}', { cwd: root })]
    const named = files.flatMap((file) => read(file).match(/(?<=petstore-|newTag: )\d+\.\d+\.\d+/g) ?? [])
    assert.equal(named.length, 4)
    assert.deepEqual(new Set(named), new Set([VERSION]))
  })

  it('link only to files and headings that are there', () => {
    const anchorsOf = (text: string) =>
      Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
      )
    for (const document of DOCUMENTS) {
      for (const [, file = '', anchor] of read(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
        const target = file === '' ? document : join(dirname(document), file)
        assert.ok(existsSync(join(root, target)), `${document} links to ${target}`)
        assert.ok(!anchor || anchorsOf(read(target)).includes(anchor), `${document} links to ${target}#${anchor}`)
      }
    }
  })

  it('name only scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const heads = globSync('assurance/**/*.ts', { cwd: root, exclude: ['**/node_modules'] }).map(
      (file) => /^\/\/ (npm run \w+ [\w-]+):/.exec(read(file))?.[1],
    )
    const programs = new Set(heads)
    for (const document of DOCUMENTS) {
      for (const [, script = ''] of read(document).matchAll(/npm run ([\w:-]+)/g)) {
        assert.ok(script in scripts, `${document} names npm run ${script}`)
      }
      for (const [command] of read(document).matchAll(/npm run (?:drill|bench) [a-z][\w-]+/g)) {
        assert.ok(programs.has(command), `${document} names ${command}`)
      }
    }
  })

  it('name only tests that exist, one for each threat', () => {
    const model = read('docs/threat-model.md')
    const named = Array.from(
      model.matchAll(/`((?:client\/)?(?:test|src)\/[\w/.-]+\.test\.ts)` ("[^"]+"(?:, "[^"]+")*)/g),
      (match) => Array.from(match[2]!.matchAll(/"([^"]+)"/g), ([, title = '']) => [match[1]!, title] as const),
    ).flat()
    assert.ok(named.length > 50)
    const missing = named.filter(
      ([file, title]) =>
        !existsSync(join(root, file)) || !["'", '`'].some((quote) => read(file).includes(`it(${quote}${title}`)),
    )
    assert.deepEqual(missing, [])
    const threats = model.split(/^- (?=\*\*)/m).slice(1)
    for (const threat of threats) assert.match(threat, /\.test\.ts` "/, threat)
  })
})
