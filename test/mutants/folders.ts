// What npm run mutants changes, and the tests that should notice: the fast ones first, and none that starts processes.
export interface MutatedFolder {
  name: string
  mutate: readonly string[]
  tests: readonly string[]
}

export const FOLDERS: readonly MutatedFolder[] = [
  {
    name: 'contract',
    mutate: ['src/contract/{int64,json,list-query,pets}.ts'],
    tests: ['src/contract/*.test.ts', 'test/spec-4-[12]*.test.ts', 'test/every-{field,filter}.test.ts'],
  },
  {
    name: 'openapi',
    mutate: ['src/contract/{errors,limits,openapi,operations,response-headers}.ts'],
    tests: ['test/openapi.test.ts', 'test/spec-9-versioning.test.ts'],
  },
  {
    name: 'accounts',
    mutate: ['src/accounts/*.ts'],
    tests: ['src/accounts/*.test.ts', 'test/spec-5-authentication.test.ts', 'test/console-sessions.test.ts'],
  },
  {
    name: 'store',
    mutate: ['src/store/**/*.ts'],
    tests: [
      'src/store/**/*.test.ts',
      'test/store*.test.ts',
      'test/{backup,copy-schema,doctor,many-instances,postgres-{counts,pages,waits,writes},search,unknown-tables}.test.ts',
    ],
  },
  {
    name: 'http',
    mutate: ['src/http/*.ts'],
    // Not section 2: Stryker's TAP parser fails on the names of its tests, which quote odd characters.
    tests: [
      'src/http/*.test.ts',
      'test/spec-[3-9]*.test.ts',
      'test/{browser-callers,conditional-requests,connections,framing,idempotency,metrics,request-id}.test.ts',
    ],
  },
  {
    name: 'console',
    mutate: ['src/console/*.ts'],
    tests: ['src/console/*.test.ts', 'test/{console-*,page-requests}.test.ts'],
  },
  {
    name: 'cli',
    mutate: ['src/cli/*.ts'],
    tests: [
      'src/cli/*.test.ts',
      'test/{account-commands,backup,commands,completion,copy,doctor,environments,import,same-file,typed-words,unknown-tables}.test.ts',
    ],
  },
  {
    name: 'client',
    // Not contract.ts, which is generated: its test compares the text of the file.
    mutate: ['client/src/!(contract).ts'],
    tests: ['client/src/!(contract).test.ts', 'client/test/*.test.ts'],
  },
]
