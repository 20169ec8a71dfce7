import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface Instruction {
  readonly keyword: string;
  readonly rest: string;
}

export interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

export interface BuiltImage {
  /** The folder that represents `/`. */
  readonly root: string;
  /** The working directory, inside `root`. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | undefined;
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

/** Parses the stages of a Dockerfile. Removes comments and joins continued lines. */
export async function readDockerfile(file: string): Promise<readonly Stage[]> {
  const text = (await readFile(file, "utf8")).replace(/^\s*#.*\n/gm, "").replace(/\\\n\s*/g, "");
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of text.split("\n").filter((each) => each.trim() !== "")) {
    const [, keyword = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (keyword === "FROM") {
      const [base = "", , name] = rest.split(/\s+/);
      stages.push({ base, name, instructions: [] });
    } else {
      stages.at(-1)?.instructions.push({ keyword, rest });
    }
  }
  return stages;
}

/**
 * Builds all stages in plain folders, as a container engine would build the last one. COPY reads the context or an earlier stage.
 * RUN starts a shell in the working directory. Only paths below the working directory are supported.
 */
export async function buildImage(
  stages: readonly Stage[],
  options: { readonly context: string; readonly dir: string; readonly env: Readonly<Record<string, string>> },
): Promise<BuiltImage> {
  const built = new Map<string, BuiltImage>();
  let image: BuiltImage | undefined;
  for (const [index, stage] of stages.entries()) {
    image = await buildStage(stage, { ...options, dir: join(options.dir, String(index)), built });
    built.set(stage.name ?? String(index), image);
  }
  if (!image) throw new Error("no stage");
  await run("chmod", ["-R", "a+rX,a-w", image.root]);
  return image;
}

/** Returns the paths that `.dockerignore` excludes from the files that it allows. */
async function listIgnored(context: string): Promise<readonly string[]> {
  const lines = (await readFile(join(context, ".dockerignore"), "utf8")).split("\n");
  return lines.filter((line) => /^[^!#*]/.test(line));
}

async function buildStage(
  stage: Stage,
  {
    context,
    dir: root,
    env: hostEnv,
    built,
  }: {
    readonly context: string;
    readonly dir: string;
    readonly env: Readonly<Record<string, string>>;
    readonly built: ReadonlyMap<string, BuiltImage>;
  },
): Promise<BuiltImage> {
  let workdir = root;
  let user: string | undefined;
  let command: readonly string[] = [];
  let healthCheck: readonly string[] = [];
  const env: Record<string, string> = {};
  await mkdir(root, { recursive: true });
  for (const { keyword, rest } of stage.instructions) {
    switch (keyword) {
      case "WORKDIR":
        workdir = join(root, rest);
        await mkdir(workdir, { recursive: true });
        break;
      case "ENV":
        for (const [, name = "", value = ""] of rest.matchAll(/(\w+)=(\S+)/g)) env[name] = value;
        break;
      case "COPY": {
        const [, from, paths = ""] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(rest) ?? [];
        const sources = paths.split(/\s+/);
        const target = resolve(workdir, sources.pop() ?? "");
        const origin = from === undefined ? context : built.get(from)?.root;
        if (origin === undefined) throw new Error(`no stage ${from}`);
        for (const source of sources) {
          const intoFolder = sources.length > 1 || paths.endsWith("/");
          const path = intoFolder ? join(target, basename(source)) : target;
          await mkdir(dirname(path), { recursive: true });
          // An earlier stage does not change any more, so its files are hard-linked instead of copied.
          await run("cp", [from === undefined ? "-RP" : "-RPl", join(origin, source), path]);
          if (from !== undefined) continue;
          for (const ignored of await listIgnored(context))
            if (ignored.startsWith(`${source}/`))
              await rm(join(path, ignored.slice(source.length)), { recursive: true, force: true });
        }
        break;
      }
      case "RUN":
        await run("/bin/sh", ["-c", rest], { cwd: workdir, env: { ...hostEnv, ...env } });
        break;
      case "USER":
        user = rest;
        break;
      case "CMD":
        command = JSON.parse(rest) as string[];
        break;
      case "HEALTHCHECK":
        healthCheck = JSON.parse(rest.slice(rest.indexOf("CMD") + 3)) as string[];
        break;
      case "EXPOSE":
      case "STOPSIGNAL":
        break;
      default:
        throw new Error(`unsupported instruction: ${keyword} ${rest}`);
    }
  }
  await chmod(root, 0o755);
  return { root, workdir, env, user, command, healthCheck };
}
