/* SPDX-License-Identifier: MIT */
/* file.c: which file of scenarios does this program run? Its build says. */
#include "scenarios/scenario.h"

const char scenario_file[] = SCENARIO_FILE;
