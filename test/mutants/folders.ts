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
    tests: ['src/contract/*.test.ts'],
  },
  {
    name: 'openapi',
    mutate: ['src/contract/{errors,headers,limits,openapi,operations}.ts'],
    tests: ['test/openapi.test.ts', 'test/spec-9-versioning.test.ts'],
  },
  {
    name: 'accounts',
    mutate: ['src/accounts/*.ts'],
    tests: ['src/accounts/*.test.ts', 'test/spec-5-authentication.test.ts', 'test/console-sessions.test.ts'],
  },
  {
    name: 'store',
    mutate: [
      'src/store/sqlite/writer.ts',
      'src/store/postgres/creates.ts',
      'src/store/postgres/connection-settings.ts',
    ],
    tests: ['src/store/**/*.test.ts'],
  },
  {
    name: 'http',
    mutate: ['src/http/*.ts'],
    // Not section 2: Stryker's TAP parser fails on the names of its tests, which quote odd characters.
    tests: [
      'src/http/*.test.ts',
      'test/spec-[3-9]*.test.ts',
      'test/{browser-callers,conditional-requests,connections,framing,idempotency,request-id}.test.ts',
    ],
  },
]
