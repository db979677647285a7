'use strict';
// What the program packed into this file: lists of texts, and columns of numbers that point into them.

/** Base64 of a zlib stream as text. */
async function unpack(id) {
  const packed = atob(byId(id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).text();
}

class Results {
  constructor(data) {
    this.data = data;
    this.gpus = data.gpus.map((gpu, index) => ({...gpu, index}));
    this.problems = data.problems.family.map((_, index) => this.problemAt(index));
    this.winners = data.winners.problem.map((_, index) => this.winnerAt(index));
    this.trials = null; // Trials, once they have been read
    this.byKey = new Map(); // the winner that the charts show, by problem and GPU
    for (const winner of this.winners) {
      const key = Results.key(winner.problem.index, winner.gpu.index);
      if (!this.byKey.has(key)) this.byKey.set(key, winner); // the user's come before the site's and the packaged ones
    }
  }

  static key(problem, gpu) {
    return problem * 4096 + gpu;
  }

  problemAt(index) {
    const {problems, families, static_fields: statics, dynamic_fields: dynamics} = this.data;
    const staticFields = statics[problems.static[index]];
    const dynamicFields = dynamics[problems.dynamic[index]];
    return {
      index,
      family: families[problems.family[index]].name,
      staticFields,
      dynamicFields,
      text: `${shortFields(staticFields)} · ${dynamicFields}`,
      bytes: problems.bytes[index],
      flops: problems.flops[index],
    };
  }

  winnerAt(index) {
    const {winners, candidates, provenances, layers, trusts, toolchains} = this.data;
    const winner = {
      index,
      problem: this.problems[winners.problem[index]],
      gpu: this.gpus[winners.gpu[index]],
      candidate: candidates[winners.candidate[index]],
      us: winners.median_us[index],
      p10: winners.p10_us[index],
      p90: winners.p90_us[index],
      samples: winners.samples[index],
      registers: winners.registers[index],
      sharedBytes: winners.shared_bytes[index],
      energyMj: winners.energy_mj[index],
      isDefault: winners.is_default[index] === 1,
      provenance: provenances[winners.provenance[index]],
      layer: layers[winners.layer[index]],
      trust: trusts[winners.trust[index]],
      toolchain: toolchains[winners.toolchain[index]],
      at: winners.created_at_ms[index],
      speedup: winners.is_default[index] === 1 ? 1 : null, // over the default; others are known with the trials
    };
    return {...winner, ...Results.rates(winner)};
  }

  /** Per second, and the share of the time that memory needs at least; null where something is not known. */
  static rates({problem: {bytes, flops}, gpu, us}) {
    const isTimed = us > 0;
    return {
      floorShare: isTimed && bytes && gpu.bytes_per_s ? ((bytes / gpu.bytes_per_s) * 1e6) / us : null,
      bytesPerS: isTimed && bytes ? (bytes / us) * 1e6 : null,
      flopsPerS: isTimed && flops ? (flops / us) * 1e6 : null,
    };
  }

  /** The winners that charts show of a GPU, one a problem. */
  winnersOf(gpu) {
    return [...this.byKey.values()].filter((winner) => winner.gpu === gpu);
  }

  winnerOf(problem, gpu) {
    return this.byKey.get(Results.key(problem, gpu));
  }

  /** Takes in the trials, which know how long defaults take. */
  addTrials(data) {
    this.trials = new Trials(this, data);
    for (const winner of this.winners) {
      const us = this.trials.defaultUs.get(Results.key(winner.problem.index, winner.gpu.index));
      if (!winner.isDefault && us > 0 && winner.us > 0) winner.speedup = us / winner.us;
    }
  }
}

class Trials {
  constructor(results, data) {
    this.columns = data.columns;
    this.candidates = results.data.candidates.concat(data.candidates);
    this.details = data.details;
    this.statuses = results.data.statuses;
    this.count = this.columns.problem.length;
    this.byKey = new Map(); // places of a problem's trials on a GPU, in the order in which they were stored
    this.defaultUs = new Map();
    this.at = new Float64Array(this.count);
    let at = 0;
    for (let i = 0; i < this.count; ++i) {
      at += this.columns.after_ms[i];
      this.at[i] = at;
      const key = Results.key(this.columns.problem[i], this.columns.gpu[i]);
      if (!this.byKey.has(key)) this.byKey.set(key, []);
      this.byKey.get(key).push(i);
      if (this.columns.is_default[i] && this.isOk(i)) this.defaultUs.set(key, this.columns.median_us[i]);
    }
  }

  isOk(i) {
    return this.columns.status[i] === 0;
  }

  of(problem, gpu) {
    return this.byKey.get(Results.key(problem, gpu)) ?? [];
  }

  trialAt(i) {
    return {
      index: i,
      candidate: this.candidates[this.columns.candidate[i]],
      status: this.statuses[this.columns.status[i]],
      detail: this.details[this.columns.detail[i]],
      us: this.columns.median_us[i],
      at: this.at[i],
      isWinner: this.columns.winner[i] === 1,
      isDefault: this.columns.is_default[i] === 1,
    };
  }
}

/** "ring rows=8 warps=4" */
function parseCandidate(text) {
  const [variant, ...words] = text.split(' ');
  return {variant, values: new Map(pairsOf(words.join(' ')))};
}

const gpuName = (gpu) => gpu.name.replace(/^NVIDIA /, '') + (gpu.mig_profile ? ` ${gpu.mig_profile}` : '');
