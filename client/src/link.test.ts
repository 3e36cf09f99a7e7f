import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cpuTime } from '../../test/harness/programs/cpu-time.ts'
import { linkTo } from './link.ts'

const PETS = new URL('https://pets.example/v1/pets?limit=5')

describe('The next link', () => {
  const cases: [string | null, string | undefined][] = [
    ['</v1/pets?cursor=a>; rel="next"', 'https://pets.example/v1/pets?cursor=a'],
    ['<?cursor=a>;rel=next', 'https://pets.example/v1/pets?cursor=a'],
    [
      '<https://other.example/v1/pets?cursor=a,b;c>; title="a, b; rel=x"; REL="prev Next"',
      'https://other.example/v1/pets?cursor=a,b;c',
    ],
    ['</docs>; rel="deprecation", </v1/pets?cursor=a>; rel="next"', 'https://pets.example/v1/pets?cursor=a'],
    ['</v1/pets?cursor=a>; rel="next", </v1/pets?cursor=b>; rel="next"', 'https://pets.example/v1/pets?cursor=a'],
    ['<https://[>; rel="next", </v1/pets?cursor=b>; rel="next"', 'https://pets.example/v1/pets?cursor=b'],
    ['</v1/pets?cursor=a> ; rel = "next"', 'https://pets.example/v1/pets?cursor=a'],
    ['</v1/pets?cursor=a>; rel="prev  next"', 'https://pets.example/v1/pets?cursor=a'],
    ['</v1/pets?cursor=a>; rel="nextish"', undefined],
    ['</v1/pets?cursor=a>; anchor=x', undefined],
    ['<https://[>; rel="next"', undefined],
    ['nonsense; rel="next"', undefined],
    ['', undefined],
    [null, undefined],
  ]
  for (const [header, target] of cases) {
    it(`of ${header} is ${target ?? 'absent'}`, () => {
      assert.equal(linkTo('next', header, PETS)?.href, target)
    })
  }

  it('of a hostile header is looked for in little time', async () => {
    const took = await cpuTime(() => {
      linkTo('next', `<a>${'; a = '.repeat(20_000)}`, PETS)
      linkTo('next', '<'.repeat(200_000), PETS)
    })
    assert.ok(took < 1000, `it took ${took} ms`)
  })
})
