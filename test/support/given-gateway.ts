import {
  createTestStores,
  startTestGateway,
  type TestGateway,
  type TestGatewayDeps,
  type TestStores,
} from "./gateway.ts";
import { opened } from "./opened.ts";

export interface GivenGateway extends TestGateway {
  readonly stores: TestStores;
}

/**
 * Starts a gateway before the first test of a file or a `describe`, and stops it after the last one. It has stores of its own, unless
 * those of another gateway are given.
 */
export function givenGateway(
  env: Readonly<Record<string, string>> = {},
  { stores = opened(createTestStores), ...deps }: TestGatewayDeps & { readonly stores?: TestStores } = {},
): GivenGateway {
  return opened(async () =>
    Object.assign(await startTestGateway({ ...stores.env, ...env }, deps), { stores }),
  );
}
