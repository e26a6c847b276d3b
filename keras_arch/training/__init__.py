"""Training: strategies, optimizer, run folder, checkpoints that survive a kill, reports."""

from keras_arch.training.accumulation import average_weights, micro_batches
from keras_arch.training.callbacks import EarlyStopping, Recorder
from keras_arch.training.checkpoints import Checkpoints, SaveCheckpoint
from keras_arch.training.curves import plot_curves
from keras_arch.training.files import replacing, write_text
from keras_arch.training.fit import check_executions, check_steps, fit
from keras_arch.training.interruption import Interrupted, interruptible
from keras_arch.training.logs import WriteLogs
from keras_arch.training.memory import keep_freed_memory
from keras_arch.training.non_finite import NonFiniteLossError, batch_digest
from keras_arch.training.optimizers import AdamW
from keras_arch.training.precision import precision
from keras_arch.training.progress import Progress
from keras_arch.training.report import write_report
from keras_arch.training.run_folder import RunFolder
from keras_arch.training.schedules import WarmupCosine
from keras_arch.training.shared_folder import shared_run_folder
from keras_arch.training.strategies import Strategy, strategy
